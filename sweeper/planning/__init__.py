"""What a sweep would do, without a host: its space under the rules, its first launches, when it would end."""
