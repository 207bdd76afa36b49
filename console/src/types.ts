// What the daemon answers, from its own schema: the types of the JavaScript client.
export type * from "../../clients/js/types.js";
