// Logging out: the daemon ends the session, and this browser keeps nothing of it.
import { access } from "./api";
import { forgetAll } from "./remembered";
import * as palyra from "./verbs";

export async function logOut(): Promise<void> {
  await palyra.logout();
  forgetAll();
  access.value = "out";
}
