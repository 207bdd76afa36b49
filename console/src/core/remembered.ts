// Small choices that this browser keeps: what is folded, how wide something is, drafts. None of them is a secret, and all go at log-out.
const PREFIX = "palyra.";
const KEPT_AT_LOGOUT = new Set(["palyra.theme"]);

export function recall<T>(name: string, otherwise: T): T {
  try {
    const found = localStorage.getItem(PREFIX + name);
    return found === null ? otherwise : (JSON.parse(found) as T);
  } catch {
    return otherwise; // A browser that keeps nothing still shows something.
  }
}

export function remember(name: string, value: unknown): void {
  try {
    if (value === undefined) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // Then it holds until the page is closed.
  }
}

const forgetters: (() => void)[] = [];

/** Call `forget` at log-out: what a module holds in memory must not be stored again, nor be shown to the next person. */
export function onForget(forget: () => void): void {
  forgetters.push(forget);
}

/** Remove everything of a person from this browser, the key of the login first. */
export function forgetAll(): void {
  for (const forget of forgetters) forget();
  for (const name of Object.keys(localStorage)) if (name.startsWith(PREFIX) && !KEPT_AT_LOGOUT.has(name)) localStorage.removeItem(name);
}
