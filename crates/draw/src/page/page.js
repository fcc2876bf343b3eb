'use strict';
(function () {
  const tip = document.getElementById('tip');
  let on = null;
  function hide() {
    tip.hidden = true;
    if (on) on.classList.remove('on');
    on = null;
  }
  function show(event) {
    const hit = event.target.closest ? event.target.closest('.hit') : null;
    hide();
    if (!hit) return;
    on = hit;
    hit.classList.add('on');
    tip.textContent = hit.dataset.tip;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - box.width - 4)) + 'px';
    tip.style.top = (event.clientY + box.height + 24 > innerHeight ? event.clientY - box.height - 12 : event.clientY + 16) + 'px';
  }
  // The browser's own tooltip would cover ours.
  document.querySelectorAll('.hit title').forEach(function (title) { title.remove(); });
  document.addEventListener('pointerover', show);
  document.addEventListener('pointerdown', show);
  document.addEventListener('scroll', hide, true);
  document.addEventListener('pointerleave', hide);

  // Paper folds nothing.
  addEventListener('beforeprint', function () {
    unfold(true);
  });
  function unfold(open) {
    document.querySelectorAll('details.folded').forEach(function (part) { part.open = open; });
  }

  const save = document.getElementById('save');
  save.hidden = false;
  save.addEventListener('click', function () {
    const text = document.getElementById('result').textContent;
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
    link.download = 'result.json';
    link.click();
    URL.revokeObjectURL(link.href);
  });
  JSON.parse(document.getElementById('result').textContent);
  // For tests: charts that have lines and points, and points that can be hovered.
  unfold(true);
  const drawn = Array.from(document.querySelectorAll('section.chart')).filter(function (chart) {
    return chart.querySelector('svg polyline') && chart.querySelector('.hit') && chart.getBoundingClientRect().height > 100;
  });
  unfold(false);
  document.documentElement.dataset.charts = drawn.length;
})();
