// The command palette: pages, sessions, actions and settings by name, and what was said in any session. Fetched when it is first opened.
import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { logOut } from "../core/leaving";
import { go, href } from "../core/router";
import { sessions } from "../core/store";
import { theme } from "../core/theme";
import * as palyra from "../core/verbs";
import { ago, visible } from "../core/words";
import type { Said } from "../types";
import { type Place, toggleNavigation } from "./navigation";
import { marked } from "./parts";
import { Sign } from "./sign";

interface Entry { group: string; words: string; hint?: VNode | string; sign?: string | undefined; run: () => void; also?: string }

const SEARCH_MS = 200;
const MOST = 8;
const SETTINGS: readonly (readonly [string, string, string])[] = [
  ["Appearance", "settings", "theme dark light"], ["Model providers", "settings", "api key ollama openai anthropic default model"],
  ["Policy presets", "policies/presets", "what it may do permission"], ["Policy files", "policies/files", "cedar editor"],
  ["Vault", "settings", "secrets keys"], ["Tokens", "connections/tokens", "access api"], ["Workers", "connections/workers", "machines"],
  ["Listeners and certificates", "connections/listening", "tls https"], ["Budgets", "usage", "limits cost"],
  ["Learning settings", "learning/settings", "confidence"], ["Project notes", "skills/notes", "AGENTS.md CLAUDE.md"], ["MCP servers", "skills/mcp", "tools"],
  ["Backups", "journal", "export verify"],
];

export function Palette({ places, onClose }: { places: Record<string, Place>; onClose: () => void }): VNode {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [said, setSaid] = useState<{ of: string; found: Said[] }>({ of: "", found: [] });
  const box = useRef<HTMLDialogElement>(null);
  const wanted = text.trim().toLowerCase();
  useEffect(() => { box.current?.showModal(); }, []);
  useEffect(() => {
    if (wanted.length < 2) return;
    let stale = false;
    const timer = setTimeout(() => void palyra.searchSessions({ q: wanted.slice(0, 500), limit: MOST }).then((page) => { if (!stale) setSaid({ of: wanted, found: page.found }); }, () => undefined), SEARCH_MS);
    return () => { stale = true; clearTimeout(timer); };
  }, [wanted]);

  const all = useMemo(() => {
    const fixed: Entry[] = [
      { group: "Actions", words: "New session", also: "chat start", run: () => go("chat") },
      ...Object.entries(places).map(([name, each]) => ({ group: "Pages", words: each.words, sign: each.sign, run: () => go(name) })),
      { group: "Actions", words: "Stop everything", also: "cancel runs emergency", run: () => void palyra.stop() },
      { group: "Actions", words: theme.value === "dark" ? "Use light theme" : "Use dark theme", also: "appearance", run: () => (theme.value = theme.value === "dark" ? "light" : "dark") },
      { group: "Actions", words: "Collapse or expand navigation", run: toggleNavigation },
      { group: "Actions", words: "New schedule", run: () => go("schedules", "new") },
      { group: "Actions", words: "Log out", run: () => void logOut() },
      ...SETTINGS.map(([words, where, also]) => ({ group: "Settings", words, also, run: () => go(...where.split("/")) })),
    ];
    return fixed;
  }, [places, theme.value]);
  const named = sessions.value.map((each): Entry => ({ group: "Sessions", words: visible(each.title || "Untitled"), hint: ago(each.updated_ms), run: () => go("chat", each.session_id) }));
  const fits = (each: Entry) => wanted.split(/\s+/).every((word) => `${each.words} ${each.also ?? ""}`.toLowerCase().includes(word));
  const shown: Entry[] = wanted
    ? [
        ...all.filter(fits).sort((a, b) => Number(b.words.toLowerCase().startsWith(wanted)) - Number(a.words.toLowerCase().startsWith(wanted))).slice(0, MOST),
        ...named.filter(fits).slice(0, MOST),
        ...(said.of === wanted ? said.found : []).map((each): Entry => ({ group: "Messages", words: visible(each.title || "Untitled"), hint: <bdi>{marked(visible(each.snippet), wanted)}</bdi>, run: () => go("chat", each.session_id) })),
      ]
    : [all[0]!, ...named.slice(0, 5), ...all.slice(1)];
  const groups = [...new Set(shown.map((each) => each.group))];
  const ordered = groups.flatMap((group) => shown.filter((each) => each.group === group));
  const chosen = Math.min(at, ordered.length - 1);
  const run = (each: Entry | undefined) => {
    if (!each) return;
    box.current?.close();
    each.run();
  };
  const pressed = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? ordered.length - 1 : 0;
    if (step && ordered.length) {
      setAt((chosen + step) % ordered.length);
      event.preventDefault();
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      run(ordered[chosen]);
    }
  };
  useEffect(() => document.getElementById(`palette-${chosen}`)?.scrollIntoView({ block: "nearest" }), [chosen]);
  return (
    <dialog ref={box} class="palette" aria-label="Search or jump to" onClose={onClose} onClick={(event) => { if (event.target === box.current) box.current?.close(); }}>
      <input type="text" role="combobox" aria-label="Search pages, sessions, actions and settings" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={ordered.length ? `palette-${chosen}` : undefined}
        placeholder="Search pages, sessions, actions and settings…" value={text} autocomplete="off" spellcheck={false}
        onInput={(event) => { setText(event.currentTarget.value); setAt(0); }} onKeyDown={pressed} />
      <ul id="palette-list" role="listbox" aria-label="Results">
        {groups.map((group) => (
          <>
            <li role="presentation" key={group}>{group}</li>
            {ordered.map((each, number) => each.group === group && (
              <li key={`${group}${number}`} id={`palette-${number}`} role="option" aria-selected={number === chosen} onMouseMove={() => setAt(number)} onClick={() => run(each)}>
                {each.sign && <Sign path={each.sign} />}<bdi>{each.words}</bdi>{each.hint && <span class="hint">{each.hint}</span>}
              </li>
            ))}
          </>
        ))}
        {!ordered.length && <li role="presentation">No results</li>}
      </ul>
      <footer aria-hidden="true"><span><kbd>↑</kbd> <kbd>↓</kbd> move</span><span><kbd>Enter</kbd> open</span><span><kbd>Esc</kbd> close</span></footer>
    </dialog>
  );
}

const KEYS: readonly (readonly [string, string])[] = [
  ["Ctrl K", "Search or jump to"], ["/", "Search on this page"], ["?", "Show these shortcuts"],
  ["Enter", "Send the message"], ["Shift Enter", "New line"], ["Esc", "Close a menu or dialog"],
  ["A A", "Approve, pressed twice"], ["D", "Deny"], ["E", "Edit arguments"], ["J K", "Next, previous approval"], ["X", "Select an approval"],
];

export function Shortcuts({ onClose }: { onClose: () => void }): VNode {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => { box.current?.showModal(); }, []);
  return (
    <dialog ref={box} class="palette shortcuts" aria-labelledby="shortcuts" onClose={onClose} onClick={(event) => { if (event.target === box.current) box.current?.close(); }}>
      <h2 id="shortcuts">Keyboard shortcuts</h2>
      <dl tabIndex={0} aria-label="Keyboard shortcuts">{KEYS.map(([keys, words]) => <><dt>{keys.split(" ").map((each) => <><kbd>{each}</kbd> </>)}</dt><dd>{words}</dd></>)}</dl>
      <footer><a href={href("tour")} onClick={() => box.current?.close()}>Take the tour</a></footer>
    </dialog>
  );
}
