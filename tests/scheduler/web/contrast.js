// Return [texts whose contrast with their background is below 4.5, luminance of the page
// background].
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const part = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const ground = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const body = at.localName === "svg" ? at.querySelector(".spot, .body") : null;
      const style = getComputedStyle(body ?? at);
      const colour = rgba(body ? style.fill : style.backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const weak = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility() || element.closest("noscript")) continue;
    const style = getComputedStyle(element);
    const ink = luminance(rgba(element.localName === "text" ? style.fill : style.color));
    const back = luminance(ground(element));
    const contrast = (Math.max(ink, back) + 0.05) / (Math.min(ink, back) + 0.05);
    if (contrast < 4.5) weak.push(`${texts.currentNode.data.trim()}: ${contrast.toFixed(2)} in ${element.outerHTML.slice(0, 80)}`);
  }
  return [weak, luminance(rgba(getComputedStyle(document.documentElement).backgroundColor))];
}
