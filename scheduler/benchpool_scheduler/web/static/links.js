// Buttons that copy the address of an element, for use in a chat.
import { announce } from "./speech.js";

const COPIED_MS = 2500;

/** Show the copy buttons only where copying works. */
export function copyLinks() {
  document.documentElement.dataset.scripts = "";
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("button[data-copy]");
    if (!button) return;
    const address = new URL(button.dataset.copy, location.href).href;
    if (!(await copied(address))) {
      announce(`The browser blocked copying. Copy this address: ${address}`);
      return;
    }
    announce("Link copied.");
    button.dataset.copied = "";
    setTimeout(() => delete button.dataset.copied, COPIED_MS);
  });
}

/** Copy a text. Without HTTPS browsers offer no clipboard API, but copy the selection. */
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
