"""The daemon's parts, made from its settings; `app` puts them together."""
