// Preview of changes beside a settings form while it is filled in. Without scripts the form is
// saved in the same way, and the next page shows its faults.
import { load } from "./live.js";
import { paintTimes } from "./times.js";

const CALM_MS = 300;
const form = document.getElementById("settings");
const save = form.querySelector("button[type=submit]");
let timer = 0;
let asking = false;
let again = false;

async function preview() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  again = false;
  try {
    const { page } = await load("POST", form.dataset.preview, new URLSearchParams(new FormData(form)));
    const wanted = page?.getElementById("plan");
    if (wanted) document.getElementById("plan").replaceWith(document.adoptNode(wanted));
    settle();
  } catch (error) {
    document.querySelector("#plan h2").textContent = error.message;
  } finally {
    asking = false;
    if (again) preview();
  }
}

/** Disable Save without changes or with faults. */
function settle() {
  const plan = document.getElementById("plan");
  save.disabled = plan.dataset.count === "0" || plan.dataset.wrong !== undefined;
}

/** Omit unchanged fields: a pool with many users has more fields than a request may have. */
form.addEventListener("formdata", ({ formData }) => {
  for (const field of form.elements) {
    const was = field.dataset.was ?? field.defaultValue;
    if (field.name.startsWith("set:") && field.value === was) formData.delete(field.name);
  }
});

form.addEventListener("input", (event) => {
  if (event.target.name === "reason") return;
  save.disabled = true;
  clearTimeout(timer);
  timer = setTimeout(preview, CALM_MS);
});

form.dataset.live = "";
paintTimes(document);
if (form.querySelector("#plan[data-wrong]") === null) preview();
else save.disabled = false;
