"""Tool calls that a model writes as text, for models and servers that know no others."""
