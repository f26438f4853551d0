"""What the stand-in is made of; nothing here is SGLang's code."""
