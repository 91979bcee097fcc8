// Screen reader announcements: each state change of the reader's own jobs, once, in one sentence.

const MOST = 3;

export const stateChanges = {
  /** @returns {Map<string, {state: string, name: string}>} own jobs on the page, by ID */
  look(root) {
    const rows = root.querySelectorAll("[data-mine][data-state]");
    return new Map([...rows].map((row) => [row.dataset.key, { state: row.dataset.state, name: row.dataset.name }]));
  },

  since(before, root) {
    const told = [];
    for (const [key, { state, name }] of this.look(root)) {
      const was = before.get(key);
      if (was !== undefined && was.state !== state) told.push(`${name} is ${state}.`);
    }
    return told.length > MOST ? `${told.length} of your jobs changed state.` : told.join(" ");
  },
};

/** Announce a text through the live region of the page. */
export function say(words) {
  if (words === "") return;
  const region = document.getElementById("speech");
  region.textContent = "";
  requestAnimationFrame(() => (region.textContent = words));
}

let heardOn = true;

/** Announce loss and return of the connection, but no retries. */
export function spoken(element, on) {
  if (on !== heardOn) say(on ? "The page is live again." : "The connection was lost. Reconnecting.");
  heardOn = on;
}
