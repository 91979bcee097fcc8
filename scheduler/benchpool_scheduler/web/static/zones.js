import "./still.js";

// A typed date and time is in the reader's zone. The form shows the zone and sends its offset.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
for (const label of document.querySelectorAll("[data-zone]")) label.textContent = zone;
for (const form of document.forms) {
  const offset = form.querySelector("[data-offset]");
  if (!offset) continue;
  form.addEventListener("submit", () => {
    offset.value = String(-new Date(form.elements.begins.value).getTimezoneOffset());
  });
}
