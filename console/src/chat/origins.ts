// Where the value of an argument stands word for word before the call that has it: in a message, in what the agent read, or nowhere.

/** What was there before a call. Without a name it is a message of the person. */
export interface Said { text: string; name?: string }

const NUMBER = /^-?\d+(\.\d+)?$/;

/** Whether a text has a value word for word. A number is not found inside of a longer one. */
function holds(text: string, wanted: string): boolean {
  if (!NUMBER.test(wanted)) return text.includes(wanted);
  return new RegExp(`(?<![\\d.])${wanted.replace(".", "\\.")}(?!\\.?\\d)`).test(text);
}

/** `all`: nothing was before these. Else a value that is not found may stand further back. */
export function originAmong(before: readonly Said[], all: boolean): (value: string) => string {
  return (value) => {
    const wanted = value.trim();
    if (wanted.length < 2 && !NUMBER.test(wanted)) return "written by the model";
    const message = before.some((each) => each.name === undefined && holds(each.text, wanted));
    const read = before.findLast((each) => each.name !== undefined && holds(each.text, wanted));
    const found = [message ? "in your message" : "", read ? `in ${read.name}` : ""].filter(Boolean);
    return found.join(" and ") || (all ? "written by the model" : "written by the model, or from earlier in the session");
  };
}
