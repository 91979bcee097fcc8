// Scripts of static pages: times in the reader's zone, and copy buttons.
import { copyLinks } from "./links.js";
import { paintTimes } from "./times.js";

paintTimes(document);
setInterval(() => paintTimes(document), 15_000);
copyLinks();
