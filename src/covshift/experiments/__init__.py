"""The paper as data: data sets, systems, and what runs one on the other."""
