"""What is searched and how: the candidates, the sampler, and what earlier studies say."""
