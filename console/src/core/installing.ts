// The console as an app: its own files are kept by a worker, so that it opens while the daemon is away.
if ("serviceWorker" in navigator) addEventListener("load", () => void navigator.serviceWorker.register("/worker.js").catch(() => undefined));
