// A login link leads here with the page's half of the secret behind the #. It is kept before anything reads the address.
import { keepKey } from "./api";

const given = /^#key=([\w-]+)$/.exec(location.hash);
if (given?.[1]) {
  keepKey(given[1]);
  history.replaceState(null, "", "/");
}
