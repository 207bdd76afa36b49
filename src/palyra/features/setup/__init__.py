"""Setting the daemon up from within: providers, channels and the preset."""
