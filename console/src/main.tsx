// Starts the console.
import "./core/key";
import { render } from "preact";
import { App } from "./app";
import "./core/installing";
import "./core/telling";
import "./core/theme";
import { page } from "./core/router";
import { begin } from "./core/store";

// Somebody who has just logged in is shown the chat.
if (page.peek() === "login" && !location.hash.includes("used")) location.hash = "/chat";
begin();
render(<App />, document.getElementById("app")!);
