// The number beside the slider follows it; letting go asks. Without this the button does.
for (const form of document.querySelectorAll("[data-slider]")) {
  const { more } = form.elements;
  const said = form.querySelector("output");
  more.addEventListener("input", () => { said.textContent = more.value; });
  for (const field of form.querySelectorAll("input, select")) field.addEventListener("change", () => form.requestSubmit());
}
