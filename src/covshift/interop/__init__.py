"""Bridges to other libraries, none of which is imported here."""
