// The model that answers: always named, and chosen for the session.
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import * as palyra from "../core/verbs";
import type { Conversation } from "../core/conversation";
import { status } from "../core/store";
import { count, visible } from "../core/words";
import type { ModelInfo } from "../types";

/** What was chosen before there is a session. */
export const wanted = signal("");

function current(conversation: Conversation | undefined, models: readonly ModelInfo[]): string {
  const chosen = conversation ? conversation.session.value?.model : wanted.value;
  return models.find((each) => each.name === chosen)?.name ?? models.find((each) => each.default)?.name ?? "";
}

export function ModelPicker({ conversation, onError }: { conversation: Conversation | undefined; onError: (failure: unknown) => void }): VNode | null {
  const models = status.value?.models ?? [];
  if (!models.length) return null;
  const choose = (model: string) => {
    if (!conversation) wanted.value = model;
    else void palyra.changeSession(conversation.id, { model }).then((session) => (conversation.session.value = session), onError);
  };
  const now = current(conversation, models);
  return (
      <select aria-label="Model" value={now} title={`Model of this session · ${count(models.find((each) => each.name === now)?.context_tokens ?? 0)} tokens of context`} onChange={(event) => choose(event.currentTarget.value)}>
        {models.map((each) => (
          <option key={each.name} value={each.name}>{visible(each.name)}{each.healthy ? "" : " · failing"}</option>
        ))}
      </select>
  );
}

/** A new session uses what was chosen for it. */
export async function chosenFor(sessionId: string): Promise<void> {
  const model = wanted.peek();
  if (!model) return;
  await palyra.changeSession(sessionId, { model });
  wanted.value = "";
}
