// The console as an app: its own files are kept by a worker, so that it opens while the daemon is away.
const WORKER = "/worker.js";

interface TrustedTypes { createPolicy(name: string, rules: { createScriptURL: (address: string) => string }): { createScriptURL(address: string): string } }

/** The page's only policy for Trusted Types: it lets one address through, and there is none for HTML or scripts. */
const trusted = (window as { trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy("palyra", {
  createScriptURL: (address) => {
    if (address !== WORKER) throw new TypeError("only the console's own worker");
    return address;
  },
});

/** What the page was made of before the worker came: it keeps that too, so that the first visit is enough. */
function loaded(): string[] {
  return [...new Set(performance.getEntriesByType("resource").map((each) => new URL(each.name)).filter((each) => each.origin === location.origin && each.pathname.startsWith("/assets/")).map((each) => each.pathname))];
}

async function install(): Promise<void> {
  await navigator.serviceWorker.register(trusted?.createScriptURL(WORKER) ?? WORKER);
  const { active } = await navigator.serviceWorker.ready;
  active?.postMessage({ keep: loaded() });
}

if ("serviceWorker" in navigator) addEventListener("load", () => void install().catch(() => undefined));
