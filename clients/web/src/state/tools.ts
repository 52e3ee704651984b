import { sendJSON } from '../api/client';
import { explainProblem } from '../components/blank';
import { notify } from '../components/toast';
import { text } from '../text';

/** Opens a tool in a new tab, at a place within its page if one is named. The tab is made at once: after a wait browsers take it for a pop-up. */
export async function openTool(service: string, place = ''): Promise<void> {
  const tab = window.open('about:blank', '_blank');
  try {
    const { url } = await sendJSON<{ url: string }>('POST', '/api/proxy-ticket', { service });
    if (!tab) {
      notify(text.health.services.popup, 'warn');
      return;
    }
    tab.opener = null;
    tab.location.replace(place ? `${url}#${place}` : url);
  } catch (error) {
    tab?.close();
    const { title, hint } = explainProblem(error);
    notify(`${title}. ${hint}`, 'critical');
  }
}
