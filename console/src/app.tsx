// The frame around every page: navigation, the palette, the banner when the daemon is away, and who is logged in.
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import { ChatPage } from "./chat/page";
import { access, online } from "./core/api";
import { toReview } from "./core/notices";
import { href, page, route } from "./core/router";
import { openTitle, pending } from "./core/store";
import { visible } from "./core/words";
import { LoginPage } from "./pages/login";
import { Navigation, type Place } from "./ui/navigation";
import { later, laterPart } from "./ui/page";
import { Empty, Spoken } from "./ui/parts";

/** Every page, in the order of the navigation. The chat is there at once; the others are fetched when somebody goes there. */
const PLACES: Record<string, Place> = {
  chat: { words: "Chat", sign: "M4 5h16v11H9l-5 4z", draw: ChatPage, group: "Work" },
  approvals: { words: "Approvals", sign: "M12 3l7 3v6c0 4-3 7-7 9-4-2-7-5-7-9V6zM9 12l2 2 4-4", draw: later(() => import("./pages/approvals").then((it) => it.ApprovalsPage)), waiting: () => pending.value.length, group: "Work" },
  schedules: { words: "Schedules", sign: "M5 6h14v14H5zM5 10h14M9 4v4M15 4v4M12 13v3l2 1", draw: later(() => import("./pages/schedules").then((it) => it.SchedulesPage)), group: "Work" },
  memory: { words: "Memory", sign: "M6 4h11a1 1 0 0 1 1 1v15H7a2 2 0 0 1-2-2V5a1 1 0 0 1 1-1zM5 17h13M9 8h5", draw: later(() => import("./pages/memory").then((it) => it.MemoryPage)), group: "Knowledge" },
  learning: { words: "Learning", sign: "M12 4a6 6 0 0 0-4 10.5V17h8v-2.5A6 6 0 0 0 12 4zM9.5 20h5", draw: later(() => import("./pages/learning").then((it) => it.LearningPage)), waiting: () => toReview.value, group: "Knowledge" },
  skills: { words: "Skills", sign: "M9 4h6v4h5v6h-4v-1a2 2 0 0 0-4 0v1H8v-2H7a2 2 0 0 1 0-4h2zM8 14v6h12v-6", draw: later(() => import("./pages/skills").then((it) => it.SkillsPage)), group: "Knowledge" },
  policies: { words: "Policies", sign: "M12 4v16M7 20h10M5 7h14M5 7l-2.5 6a2.8 2.8 0 0 0 5 0zM19 7l-2.5 6a2.8 2.8 0 0 0 5 0z", draw: later(() => import("./pages/policies").then((it) => it.PoliciesPage)), group: "Trust" },
  security: { words: "Security", sign: "M12 3l7 3v6c0 4-3 7-7 9-4-2-7-5-7-9V6zM9 15v-3M12 15V9M15 15v-5", draw: later(() => import("./pages/security").then((it) => it.SecurityPage)), group: "Trust" },
  timeline: { words: "Timeline", sign: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2", draw: later(() => import("./pages/timeline").then((it) => it.TimelinePage)), group: "Trust" },
  journal: { words: "Journal", sign: "M7 4h13v13H7zM4 7v13h13M10 9h7M10 13h5", draw: later(() => import("./pages/journal").then((it) => it.JournalPage)), group: "Trust" },
  channels: { words: "Channels", sign: "M4 5h10v7H8l-4 3zM10 15v1h6l4 3V9h-3", draw: later(() => import("./pages/channels").then((it) => it.ChannelsPage)), group: "System" },
  connections: { words: "Connections", sign: "M9 4v5M15 4v5M6 9h12v3a6 6 0 0 1-12 0zM12 18v3", draw: later(() => import("./pages/connections").then((it) => it.ConnectionsPage)), group: "System" },
  usage: { words: "Usage", sign: "M5 20V11M10 20V5M15 20v-6M20 20V8", draw: later(() => import("./pages/usage").then((it) => it.UsagePage)), group: "System" },
  health: { words: "Health", sign: "M3 12h4l2-6 4 12 2-6h6", draw: later(() => import("./pages/health").then((it) => it.HealthPage)), group: "System" },
  settings: { words: "Settings", sign: "M4 7h9M17 7h3M15 5v4M4 17h3M11 17h9M9 15v4", draw: later(() => import("./pages/settings").then((it) => it.SettingsPage)), group: "System" },
  tour: { words: "Tour", sign: "M5 20V5l6 2 6-2 2 1v9l-6 2-6-2", draw: later(() => import("./pages/tour").then((it) => it.TourPage)) },
};

/** What lies over the page, if anything. */
const over = signal<"" | "palette" | "shortcuts">("");
const Palette = laterPart<{ places: Record<string, Place>; onClose: () => void }>(() => import("./ui/palette").then((it) => it.Palette));
const Shortcuts = laterPart<{ onClose: () => void }>(() => import("./ui/palette").then((it) => it.Shortcuts));
const TYPING = "input, textarea, select, [contenteditable], dialog";

function pressed(event: KeyboardEvent): void {
  if (event.defaultPrevented || access.peek() !== "in") return;
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    over.value = over.peek() === "palette" ? "" : "palette";
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || (event.target instanceof Element && event.target.closest(TYPING))) return;
  if (event.key === "?") over.value = "shortcuts";
  else if (event.key === "/") {
    const field = [...document.querySelectorAll<HTMLInputElement>("main input[type=search]")].find((each) => each.offsetParent);
    if (field) field.focus();
    else over.value = "palette";
  } else return;
  event.preventDefault();
}

export function App(): VNode {
  const place = PLACES[page.value];
  const asks = pending.value.length;
  useEffect(() => {
    const name = page.value === "chat" ? visible(openTitle.value) || "Chat" : (place?.words ?? "Palyra");
    document.title = `${asks ? `(${asks}) ` : ""}${name} · Palyra`;
  });
  const here = route.value.join("/");
  useEffect(() => void (over.value = ""), [here]);
  useEffect(() => {
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  if (access.value === "out" || page.value === "login") return <><Offline /><LoginPage /></>;
  const close = () => (over.value = "");
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to content</a>
      <Navigation places={PLACES} onFind={() => (over.value = "palette")} />
      <div class="content">
        <Offline />
        <main id="main" tabIndex={-1}>{place ? <place.draw /> : <Empty><h1>Page not found</h1><p>This address leads nowhere.</p><div class="row"><a class="button main" href={href("chat")}>Go to chat</a></div></Empty>}</main>
      </div>
      {over.value === "palette" && <Palette places={PLACES} onClose={close} />}
      {over.value === "shortcuts" && <Shortcuts onClose={close} />}
      <Spoken />
    </div>
  );
}

function Offline(): VNode | null {
  return online.value ? null : <div class="offline" role="alert">Cannot reach Palyra. Reconnecting; nothing is lost. If it was stopped, start it with <code>palyra up</code>.</div>;
}
