// Cedar while it is written: its words in colours, and what can stand at the caret, read from the schema that the daemon checks against.
import type { ComponentChildren } from "preact";
import type { Offer } from "../ui/editor";

const TOKEN = /(\/\/[^\n]*)|("(?:\\.|[^"\\\n])*"?)|(@\w+)|\b(permit|forbid|when|unless|in|is|like|has|if|then|else|true|false)\b|\b(principal|action|resource|context)\b|\b([A-Z]\w*)(?=::)|\b(\d+)\b/g;
const CLASSES = ["com", "str", "note", "key", "var", "type", "num"];

export function colouredCedar(text: string): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let end = 0;
  for (const found of text.matchAll(TOKEN)) {
    const at = found.slice(1).findIndex((each) => each !== undefined);
    out.push(text.slice(end, found.index), <span class={`c-${CLASSES[at]}`}>{found[0]}</span>);
    end = found.index + found[0].length;
  }
  out.push(text.slice(end));
  return out;
}

export interface Schema {
  actions: Offer[];
  entities: Offer[];
  context: Offer[];
  resource: Offer[];
  principal: Offer[];
}

/** What the schema names, with the comment that stands above each. */
export function schemaOf(text: string): Schema {
  const found: Schema = { actions: [], entities: [], context: [], resource: [], principal: [] };
  let comment: string[] = [];
  let into: Offer[] | undefined;
  for (const line of text.split("\n")) {
    const said = /^\s*\/\/ ?(.*)$/.exec(line)?.[1];
    if (said !== undefined) {
      comment.push(said);
      continue;
    }
    const hint = comment.join(" ").slice(0, 160);
    const entity = /^entity (\w+)[^{]*(\{?)(.*)$/.exec(line);
    const attribute = /^\s+(\w+): ([^,]+),?/.exec(line);
    const actions = /^action ([\w, ]+?) appliesTo/.exec(line)?.[1];
    if (entity) {
      found.entities.push({ text: `${entity[1]}::""`, back: 1, hint });
      into = entity[2] && entity[1] === "Tool" ? found.resource : entity[2] && !entity[3]!.includes("}") ? [] : undefined;
      const inline = /(\w+): (\w+)/.exec(entity[3]!);
      if (inline && entity[1] === "ChannelSender") found.principal.push({ text: inline[1]!, hint: inline[2]! });
    } else if (/^type Call\b/.test(line)) into = found.context;
    else if (actions) {
      found.actions.push(...actions.split(/,\s*/).map((each) => ({ text: each, hint: "action" })));
      into = undefined;
    } else if (attribute && into) into.push({ text: attribute[1]!, hint: `${attribute[2]}${hint ? ` · ${hint}` : ""}` });
    else if (/^\}/.test(line)) into = undefined;
    if (line.trim()) comment = [];
  }
  return found;
}

const WORDS: readonly Offer[] = [
  ...["principal", "action", "resource", "context"].map((text) => ({ text, hint: "" })),
  { text: "permit (principal, action, resource);", hint: "allow something", shown: "permit" }, { text: "forbid (principal, action, resource) when {\n  \n};", hint: "deny something", shown: "forbid", back: 4 },
  { text: "when {  };", hint: "condition", shown: "when", back: 3 }, { text: "unless {  };", hint: "exception", shown: "unless", back: 3 },
  { text: '@id("")', hint: "name of a policy", back: 2 }, { text: '@reason("")', hint: "shown to people and to the agent", back: 2 },
  ...["in", "is", "like", "has", "true", "false"].map((text) => ({ text, hint: "" })),
  { text: 'contains("")', hint: "of a set", shown: "contains", back: 2 }, { text: "containsAny([])", hint: "of a set", shown: "containsAny", back: 2 },
];

/** What fits before the caret: the letters typed of it, and the offers, or none. */
export function offers(schema: Schema, before: string, asked: boolean): { typed: string; offers: readonly Offer[] } {
  const line = before.slice(before.lastIndexOf("\n") + 1);
  if (/\/\//.test(line)) return { typed: "", offers: [] };
  const action = /Action::"(\w*)$/.exec(line);
  if (action) return fitting(action[1]!, schema.actions);
  const member = /\b(context|resource|principal)\.(\w*)$/.exec(line);
  if (member) return fitting(member[2]!, schema[member[1] as "context"]);
  if ((line.match(/"/g)?.length ?? 0) % 2) return { typed: "", offers: [] };
  const typed = /(?:@?\w+|\.\w*)$/.exec(line)?.[0].replace(/^\./, "") ?? "";
  if (!typed && !asked) return { typed, offers: [] };
  return fitting(typed, [...WORDS, { text: 'Action::""', hint: "what is done", back: 1 }, ...schema.entities]);
}

function fitting(typed: string, all: readonly Offer[]): { typed: string; offers: readonly Offer[] } {
  const found = all.filter((each) => each.text.toLowerCase().startsWith(typed.toLowerCase()) && each.text !== typed);
  return { typed, offers: found.slice(0, 40) };
}
