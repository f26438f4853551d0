"""The parts of the report, one module each: a function takes a Reading and gives a Section, or None."""
