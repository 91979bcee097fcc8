// Show the value of the slider, and submit after a change. Without scripts the button submits.
for (const form of document.querySelectorAll("[data-slider]")) {
  const { more } = form.elements;
  const output = form.querySelector("output");
  more.addEventListener("input", () => { output.textContent = more.value; });
  for (const field of form.querySelectorAll("input, select")) field.addEventListener("change", () => form.requestSubmit());
}
