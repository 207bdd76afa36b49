// Files under their own names with a digest, no inline script or style: the daemon's content policy allows neither.
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/palyra/console",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The verifier of bundles is a page of its own: it works without a login and may ask nobody. Diagrams are drawn in one that has no rights: see
    // src/diagram.
    rolldownOptions: { input: ["index.html", "verify.html", "diagram.html"] },
    chunkSizeWarningLimit: 3000,
  },
});
