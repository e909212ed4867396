// Draws what changes into the page that is open. Only #live is drawn again, which holds no field, and a link in it that
// has the focus keeps it; forms go when their execution has ended, unless a person is in one or has typed into one.

const live = document.getElementById('live');

async function fetchPage() {
  const answer = await fetch(location.href);
  return new DOMParser().parseFromString(await answer.text(), 'text/html');
}

function drawLive(next) {
  if (next.innerHTML === live.innerHTML) return;
  const focused = live.contains(document.activeElement) && document.activeElement.getAttribute('href');
  live.innerHTML = next.innerHTML;
  const links = [...live.querySelectorAll('a')];
  if (focused) links.find(link => link.getAttribute('href') === focused)?.focus();
}

function drawForms(next) {
  const forms = document.getElementById('forms');
  if (forms.children.length === next.children.length || forms.contains(document.activeElement)) return;
  const fields = [...forms.querySelectorAll('textarea,input')];
  if (fields.every(field => field.value === field.defaultValue)) forms.innerHTML = next.innerHTML;
}

async function follow() {
  while (live.dataset.live) {
    await new Promise(resolve => setTimeout(resolve, 1000));
    try {
      const page = await fetchPage();
      const next = page.getElementById('live');
      if (!next) continue;
      drawLive(next);
      drawForms(page.getElementById('forms'));
      if (!next.dataset.live) delete live.dataset.live;
    } catch {
      // The server is away: look again.
    }
  }
}

follow();
