// Characters that cannot be seen, made visible.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** What somebody decides about is shown as it is: characters that hide or turn text around become visible marks. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (found) => `⟨${found.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`);
}
