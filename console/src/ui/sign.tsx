// The little drawings beside words.
import type { VNode } from "preact";

export function Sign({ path }: { path: string }): VNode {
  return <svg class="sign" viewBox="0 0 24 24" aria-hidden="true"><path d={path} /></svg>;
}
