// Update the page to the new server rendering and change only what differs: focus, hover, open
// sheets, typed text and scroll positions stay. A list with data-keyed matches its children by
// data-key, and children without a key by node name and id. A list with data-calm keeps its order
// while it is hovered or focused.

const OURS = new Set(["open", "tabindex", "data-changed", "data-gone"]);
const CHANGED_MS = 6000;
const GUARD_MS = 700;

/** @param {Element} from current element @param {Element} to wanted element */
export function morph(from, to) {
  attributes(from, to);
  if (from.hasAttribute("data-keyed")) keyed(from, to);
  else inOrder(from, to);
}

function attributes(from, to) {
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !OURS.has(name)) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (!OURS.has(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
}

function inOrder(from, to) {
  const wanted = [...to.childNodes];
  wanted.forEach((node, index) => {
    const shown = from.childNodes[index];
    if (shown === undefined) from.append(adopt(node));
    else if (!alike(shown, node)) shown.replaceWith(adopt(node));
    else update(shown, node);
  });
  while (from.childNodes.length > wanted.length) from.lastChild.remove();
}

function keyed(from, to) {
  const calm = from.hasAttribute("data-calm") && from.matches(":hover, :focus-within");
  const shown = byKey(from.children);
  let before = null;
  for (const [key, node] of byKey(to.children)) {
    let child = shown.get(key);
    if (child !== undefined && child.nodeName === node.nodeName) {
      shown.delete(key);
      mark(child, node);
      child.removeAttribute("data-gone");
      update(child, node);
      if (!calm) place(from, child, before);
    } else {
      child = adopt(node);
      if (calm) from.append(child);
      else place(from, child, before);
      if (node.hasAttribute("data-print")) flash(child);
    }
    before = child;
  }
  for (const child of shown.values()) {
    if (calm) retire(child);
    else child.remove();
  }
}

/** Return the children of a list by key. Duplicate keys get a suffix. */
function byKey(children) {
  const found = new Map();
  for (const child of children) {
    let key = child.dataset.key ?? `${child.nodeName} ${child.id}`;
    while (found.has(key)) key += "+";
    found.set(key, child);
  }
  return found;
}

/** Move `child` behind `before` unless it is there already. */
function place(list, child, before) {
  const next = before === null ? list.firstElementChild : before.nextElementSibling;
  if (next !== child) list.insertBefore(child, next);
}

/** Keep a removed row, dimmed and with disabled buttons, until an update without hover or focus. */
function retire(row) {
  row.setAttribute("data-gone", "");
  for (const button of row.querySelectorAll("button")) button.disabled = true;
}

function update(shown, node) {
  if (node.nodeType !== Node.ELEMENT_NODE) {
    if (shown.nodeValue !== node.nodeValue) shown.nodeValue = node.nodeValue;
  } else if (!node.hasAttribute("data-keep")) {
    morph(shown, node);
  }
}

function alike(shown, node) {
  return shown.nodeType === node.nodeType && shown.nodeName === node.nodeName
    && (shown.id ?? "") === (node.id ?? "") && shown.dataset?.key === node.dataset?.key;
}

function mark(shown, node) {
  const print = node.dataset.print;
  if (print !== undefined && shown.dataset.print !== print) flash(shown);
}

function flash(row) {
  row.setAttribute("data-changed", "");
  setTimeout(() => row.removeAttribute("data-changed"), CHANGED_MS);
}

/**
 * Import a node. Its buttons ignore clicks for a moment, since a click may be meant for the element
 * that was there before.
 */
function adopt(node) {
  const copy = document.importNode(node, true);
  if (copy.nodeType === Node.ELEMENT_NODE && copy.querySelector("button, summary") !== null) {
    copy.classList.add("fresh");
    setTimeout(() => {
      copy.classList.remove("fresh");
      if (copy.classList.length === 0) copy.removeAttribute("class");
    }, GUARD_MS);
  }
  return copy;
}
