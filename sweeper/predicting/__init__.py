"""What a study says about configurations that were perhaps never measured."""
