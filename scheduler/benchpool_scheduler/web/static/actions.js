// Submit the forms of the page in place. Without scripts the same forms load the same pages.
import { load } from "./live.js";
import { announce } from "./speech.js";

const SHOWN_MS = 15_000;

export function actInPlace(page) {
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("form[data-act]")) return;
    event.preventDefault();
    if (form.dataset.sent !== undefined) return;
    form.dataset.sent = "";
    try {
      await send(form, page);
    } catch (error) {
      showMessage(error.message, true);
    } finally {
      delete form.dataset.sent;
    }
  });
  document.addEventListener("toggle", focusFirst, { capture: true });
  document.addEventListener("keydown", closeOnEscape);
  document.addEventListener("click", closeOthers);
}

async function send(form, page) {
  const home = focusHome(form);
  const answer = await load("POST", form.action, new URLSearchParams(new FormData(form)));
  const message = answer.page?.querySelector("[data-message]")?.dataset.message ?? "The service did not answer. Reload the page.";
  for (const sheet of form.querySelectorAll("details[open]")) sheet.open = false;
  if (answer.status !== 200) {
    showMessage(message, true);
    return;
  }
  page.show(answer.page, { flash: true });
  announce(message);
  fade(document.querySelector("#flash .notice"));
  const at = document.activeElement;
  // A field in a sheet that was just closed keeps the focus and loses it later.
  if (at === null || at === document.body || !at.checkVisibility()) home()?.focus();
}

/**
 * Return a function that finds the focus target after a button is gone: another button of the job,
 * else its name.
 */
function focusHome(form) {
  const row = form.closest("[data-key][data-state]");
  const key = row?.dataset.key;
  const verb = form.dataset.key;
  return () => {
    const now = document.querySelector(`[data-state][data-key="${CSS.escape(key ?? "")}"]`);
    return now?.querySelector(`form[data-key="${CSS.escape(verb)}"] :is(button, summary)`)
      ?? now?.querySelector(":is(form button, form summary)") ?? now?.querySelector("a") ?? document.getElementById("main");
  };
}

function showMessage(words, bad) {
  const line = document.createElement("p");
  line.className = bad ? "notice bad" : "notice done";
  line.textContent = words;
  document.getElementById("flash").replaceChildren(line);
  announce(words);
  if (!bad) fade(line);
}

/** Remove a message after a delay, unless it is hovered or focused. */
function fade(line) {
  setTimeout(() => {
    if (line?.matches(":hover, :focus-within")) fade(line);
    else line?.remove();
  }, SHOWN_MS);
}

/** Focus the first field of an opened sheet. */
function focusFirst(event) {
  if (event.target.matches("details.ask[open]")) event.target.querySelector("input:enabled")?.focus();
}

function closeOnEscape(event) {
  if (event.key !== "Escape") return;
  const sheet = document.activeElement?.closest("details.ask[open]");
  if (sheet === null || sheet === undefined) return;
  sheet.open = false;
  sheet.querySelector("summary").focus();
}

function closeOthers(event) {
  for (const sheet of document.querySelectorAll("details.ask[open]")) {
    if (!sheet.contains(event.target)) sheet.open = false;
  }
}
