// Walks what a visitor of a page sees and writes it down, with a number for everything that can be clicked or filled in.
// Numbers begin behind `from`. Bounded: a page without end is read in part.
from => {
  const MOST_TEXT = 200000, MOST_ITEMS = 400, MOST_NODES = 50000;
  const SKIPPED = new Set(['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE', 'IFRAME', 'OBJECT', 'EMBED', 'CANVAS', 'VIDEO', 'AUDIO']);
  const INLINE = new Set(['A', 'ABBR', 'B', 'BDI', 'BDO', 'CITE', 'CODE', 'DATA', 'DEL', 'DFN', 'EM', 'FONT', 'I', 'IMG', 'INS',
    'KBD', 'LABEL', 'MARK', 'Q', 'S', 'SAMP', 'SMALL', 'SPAN', 'STRONG', 'SUB', 'SUP', 'TIME', 'U', 'VAR', 'WBR']);
  const ACTING = ['button', 'menuitem', 'tab', 'switch', 'option'];
  const nodes = [], items = [], out = [];
  let visited = 0, size = 0;

  const clean = (text, most) => {
    text = String(text ?? '').replace(/\s+/g, ' ').trim();
    return text.length > most ? text.slice(0, most) + '…' : text;
  };
  const say = text => { if (size < MOST_TEXT) { out.push(text); size += text.length; } };
  // Without what stands in the controls that a label is around.
  const own = e => [...e.childNodes].filter(each => each.nodeType === 3).map(each => each.data).join(' ').trim() || e.innerText;
  const label = e => clean(
    e.getAttribute('aria-label') || (e.labels && e.labels.length && own(e.labels[0])) || e.getAttribute('placeholder')
    || e.getAttribute('title') || e.getAttribute('alt') || e.getAttribute('name') || '', 120);
  const number = (e, kind, name, value, href) => {
    if (nodes.length >= MOST_ITEMS) return 0;
    nodes.push(e);
    items.push({kind, name: clean(name, 120), value: clean(value, 200), href: clean(href, 500)});
    return from + nodes.length;
  };
  const control = (e, kind, name, value = '', shown = '') => {
    const n = number(e, kind, name, value, '');
    if (n) say(` [${n} ${kind} ${clean(name, 120)}${shown}] `);
  };
  const field = (e, kind, value) => control(e, kind, label(e), value, ` = "${clean(value, 200)}"`);

  const input = e => {
    const type = (e.type || 'text').toLowerCase();
    if (type === 'hidden' || type === 'file') return;
    if (['submit', 'button', 'reset', 'image'].includes(type)) return control(e, 'button', e.value || label(e) || type);
    if (type === 'checkbox' || type === 'radio') {
      const state = e.checked ? 'on' : 'off';
      return control(e, type, label(e), state, `: ${state}`);
    }
    if (type === 'password') return field(e, 'password', e.value ? '•••' : '');
    field(e, 'field', e.value);
  };
  const choice = e => {
    const options = [...e.options].slice(0, 30).map(each => clean(each.label || each.text, 60)).join(' | ');
    const chosen = e.selectedOptions.length ? clean(e.selectedOptions[0].label, 60) : '';
    control(e, 'choice', label(e), chosen, ` = "${chosen}" of ${options}`);
  };
  const hidden = e => e.checkVisibility && !e.checkVisibility({opacityProperty: true, visibilityProperty: true})
    && getComputedStyle(e).display !== 'contents';

  const walk = node => {
    if (++visited > MOST_NODES || size >= MOST_TEXT) return;
    if (node.nodeType === 3) return say(node.data.replace(/\s+/g, ' '));
    if (node.nodeType !== 1 || SKIPPED.has(node.tagName) || hidden(node)) return;
    const tag = node.tagName;
    if (tag === 'INPUT') return input(node);
    if (tag === 'TEXTAREA') return field(node, 'field', node.value);
    if (tag === 'SELECT') return choice(node);
    if (tag === 'BUTTON' || tag === 'SUMMARY' || ACTING.includes(node.getAttribute('role')))
      return control(node, 'button', node.innerText || label(node));
    if (node.isContentEditable) return field(node, 'field', node.innerText);
    if (tag === 'IMG') return node.alt ? say(` (image: ${clean(node.alt, 120)}) `) : undefined;
    if (tag === 'BR') return say('\n');
    const block = !INLINE.has(tag);
    if (block) say('\n');
    if (/^H[1-6]$/.test(tag)) say('#'.repeat(Number(tag[1])) + ' ');
    if (tag === 'LI') say('- ');
    if (tag === 'TD' || tag === 'TH') say(' | ');
    if (node.shadowRoot) for (const child of node.shadowRoot.childNodes) walk(child);
    for (const child of node.childNodes) walk(child);
    if (tag === 'A' && node.hasAttribute('href')) {
      const n = number(node, 'link', node.innerText || label(node), '', node.href);
      if (n) say(` [${n}]`);
    }
    if (block) say('\n');
  };

  if (document.body) walk(document.body);
  const text = out.join('').replace(/[ \t]+/g, ' ').replace(/ ?\n\s*/g, '\n').trim();
  return {nodes, told: {text, items, cut: size >= MOST_TEXT || nodes.length >= MOST_ITEMS || visited > MOST_NODES}};
}
