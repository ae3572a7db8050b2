"""The supplement's study of product reviews."""
