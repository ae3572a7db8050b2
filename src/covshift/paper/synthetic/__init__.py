"""The paper's synthetic study, and the readings of its systems."""
