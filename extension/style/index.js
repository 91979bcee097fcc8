import './base.css';
import './dialog.css';
import './panel.css';
import './curves.css';
import './overlay.css';
