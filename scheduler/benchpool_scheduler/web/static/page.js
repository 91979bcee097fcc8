// The page works without scripts. They keep it current, submit forms in place, and show times in
// the reader's zone.
import { actInPlace } from "./actions.js";
import { copyLinks } from "./links.js";
import { keepFresh, SHOWN } from "./live.js";
import { followLog } from "./logfollow.js";
import { roving, walkSquares } from "./roving.js";
import { paintTimes } from "./times.js";

paintTimes(document);
setInterval(() => paintTimes(document), 15_000);
document.addEventListener(SHOWN, roving);
document.addEventListener(SHOWN, followLog);
roving();
walkSquares();
const page = keepFresh();
actInPlace(page);
copyLinks();
followLog();
