// Event stream that is open only while the page is visible, since a browser allows six connections
// to a host. It reconnects with increasing delays.

const FIRST_RETRY_MS = 2000;
const LAST_RETRY_MS = 60_000;

export class Stream {
  #address;
  #handlers;
  #source = null;
  #timer = 0;
  #failures = 0;
  #ended = false;

  /**
   * @param {() => string} address called at each opening
   * @param {{on: Record<string, (event: MessageEvent) => void>, opened: () => void, lost: () =>
   * void}} handlers
   */
  constructor(address, handlers) {
    this.#address = address;
    this.#handlers = handlers;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#close() : this.#open()));
    addEventListener("pagehide", () => this.#close());
    addEventListener("pageshow", () => this.#open());
    this.#open();
  }

  /** Close the stream permanently. */
  end() {
    this.#ended = true;
    this.#close();
  }

  #open() {
    if (this.#ended || this.#source !== null || document.hidden) return;
    clearTimeout(this.#timer);
    const source = new EventSource(this.#address());
    this.#source = source;
    for (const [name, handle] of Object.entries(this.#handlers.on)) source.addEventListener(name, handle);
    source.onopen = () => {
      this.#failures = 0;
      this.#handlers.opened();
    };
    source.onerror = () => {
      this.#handlers.lost();
      if (source.readyState === EventSource.CLOSED) this.#later();
    };
  }

  #close() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  #later() {
    this.#close();
    const wait = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#failures);
    this.#failures += 1;
    this.#timer = setTimeout(() => this.#open(), wait);
  }
}
