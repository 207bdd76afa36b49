// Starts the console.
import "./core/key";
import { render } from "preact";
import { App } from "./app";
import "./core/installing";
import "./core/telling";
import "./core/theme";
import { page } from "./core/router";
import { begin } from "./core/store";

// Whoever has just logged in has no business on the login page.
if (page.peek() === "login" && !location.hash.includes("used")) location.hash = "/chat";
begin();
render(<App />, document.getElementById("app")!);
