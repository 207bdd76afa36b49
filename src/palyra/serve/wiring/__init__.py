"""How the daemon's parts are made from its settings; `app` puts them together."""
