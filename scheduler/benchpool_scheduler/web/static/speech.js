// Screen reader announcements: each state change of the reader's own jobs, once, in one sentence.

const MOST = 3;

export const stateChanges = {
  /** @returns {Map<string, {state: string, name: string}>} own jobs on the page, by ID */
  look(root) {
    const rows = root.querySelectorAll("[data-mine][data-state]");
    return new Map([...rows].map((row) => [row.dataset.key, { state: row.dataset.state, name: row.dataset.name }]));
  },

  since(before, root) {
    const changes = [];
    for (const [key, { state, name }] of this.look(root)) {
      const was = before.get(key);
      if (was !== undefined && was.state !== state) changes.push(`${name} is ${state}.`);
    }
    return changes.length > MOST ? `${changes.length} of your jobs changed state.` : changes.join(" ");
  },
};

/** Announce a text through the live region of the page. */
export function announce(words) {
  if (words === "") return;
  const region = document.getElementById("speech");
  region.textContent = "";
  requestAnimationFrame(() => (region.textContent = words));
}

let wasOn = true;

/** Announce loss and return of the connection, but no retries. */
export function spoken(element, on) {
  if (on !== wasOn) announce(on ? "The page is live again." : "The connection was lost. Reconnecting.");
  wasOn = on;
}
