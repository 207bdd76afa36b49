// Dark, light or as the system is; kept in this browser alone.
import { effect, signal } from "@preact/signals";

export type Theme = "auto" | "dark" | "light";
const KEY = "palyra.theme";

function stored(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "dark" || kept === "light" ? kept : "auto";
  } catch {
    return "auto"; // A browser that keeps nothing still shows something.
  }
}

export const theme = signal<Theme>(stored());

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // Then it holds until the page is closed.
  }
});
