"""The paper's study of emotional speech."""
