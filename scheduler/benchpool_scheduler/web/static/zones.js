import "./still.js";

// A date and time that is typed is in the reader's zone: the form says which, and sends it along.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
for (const label of document.querySelectorAll("[data-zone]")) label.textContent = zone;
for (const form of document.forms) {
  const offset = form.querySelector("[data-offset]");
  if (!offset) continue;
  form.addEventListener("submit", () => {
    offset.value = String(-new Date(form.elements.begins.value).getTimezoneOffset());
  });
}
