// Keeps the console's own files, so that it opens while the daemon is away. Nothing that the daemon says about its work is kept.
const KEPT = "palyra-files-1";
const MOST = 80;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => {
  event.waitUntil(caches.keys().then((names) => Promise.all(names.filter((name) => name !== KEPT).map((name) => caches.delete(name)))).then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin || url.search) return;
  if (url.pathname.startsWith("/assets/")) event.respondWith(fromShelf(request));
  else if (url.pathname === "/" && request.mode === "navigate") event.respondWith(fromDaemon(request));
});

/** What a page had loaded before this worker was there; the page itself last, once it would open. */
self.addEventListener("message", (event) => {
  const paths = event.data?.keep;
  if (!Array.isArray(paths)) return;
  event.waitUntil(
    (async () => {
      const shelf = await caches.open(KEPT);
      for (const path of [...paths.filter((each) => typeof each === "string" && /^\/assets\/[\w.-]+$/.test(each)), "/"]) {
        if (await shelf.match(path)) continue;
        const fresh = await fetch(path);
        if (fresh.ok && !fresh.redirected) await keep(shelf, path, fresh);
      }
    })(),
  );
});

/** A file's name changes with its content: what is kept is what would come. */
async function fromShelf(request) {
  const shelf = await caches.open(KEPT);
  const found = await shelf.match(request);
  if (found) return found;
  const fresh = await fetch(request);
  if (fresh.ok) await keep(shelf, request, fresh);
  return fresh;
}

/** The page names its files, so it must be the newest there is; the kept one is for when there is none. */
async function fromDaemon(request) {
  const shelf = await caches.open(KEPT);
  try {
    const fresh = await fetch(request);
    if (fresh.ok && !fresh.redirected) await keep(shelf, "/", fresh);
    return fresh;
  } catch (error) {
    const found = await shelf.match("/");
    if (found) return found;
    throw error;
  }
}

async function keep(shelf, request, response) {
  await shelf.put(request, response.clone());
  const all = await shelf.keys();
  await Promise.all(all.slice(0, Math.max(0, all.length - MOST)).map((each) => shelf.delete(each)));
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const wanted = `/#/${event.notification.data?.page ?? "approvals"}`;
  event.waitUntil(
    self.clients.matchAll({ type: "window", includeUncontrolled: true }).then((open) => {
      const [first] = open;
      return first ? first.focus().then((tab) => tab.navigate(wanted)) : self.clients.openWindow(wanted);
    }),
  );
});
