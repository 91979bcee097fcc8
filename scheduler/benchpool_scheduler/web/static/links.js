// Copies the address of what stands beside a button, so that it can be pasted into a chat.
import { say } from "./speech.js";

const TOLD_MS = 2500;

/** Buttons to copy stand only where they can work. */
export function copyLinks() {
  document.documentElement.dataset.scripts = "";
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("button[data-copy]");
    if (!button) return;
    const address = new URL(button.dataset.copy, location.href).href;
    if (!(await copied(address))) {
      say(`The browser does not let this page copy: ${address}`);
      return;
    }
    say("Link copied.");
    button.dataset.copied = "";
    setTimeout(() => delete button.dataset.copied, TOLD_MS);
  });
}

/** Without HTTPS browsers offer no clipboard, but copy what is selected. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return selected(text);
  }
}

function selected(text) {
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.className = "spoken";
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  before?.focus();
  return done;
}
