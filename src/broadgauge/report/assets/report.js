// Puts living charts over the drawn ones: they fit the window and tell their figures on hover.
// Without this script, and on paper, the drawn ones stand.
(function () {
  "use strict";
  var vega = window.broadgaugeVega;
  var tip = document.getElementById("tip");

  function showTip(handler, event, item, value) {
    if (!value || typeof value !== "object") {
      tip.style.display = "none";
      return;
    }
    tip.textContent = "";
    Object.keys(value).forEach(function (key) {
      var line = document.createElement("div");
      var name = document.createElement("b");
      name.textContent = key + " ";
      line.appendChild(name);
      line.appendChild(document.createTextNode(String(value[key])));
      tip.appendChild(line);
    });
    tip.style.display = "block";
    var right = window.scrollX + document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(4, Math.min(event.pageX + 14, right)) + "px";
    tip.style.top = event.pageY + 16 + "px";
  }

  function bringToLife(chart) {
    var live = document.createElement("div");
    live.className = "live";
    chart.appendChild(live);
    var spec = JSON.parse(document.getElementById(chart.id + "-spec").textContent);
    var view = new vega.View(vega.parse(spec), {
      renderer: "svg", container: live, hover: true, tooltip: showTip, logLevel: vega.OnlyErrors
    });
    var width = 0;
    function fit() {
      var now = chart.clientWidth;
      if (now > 0 && now !== width) {
        width = now;
        view.width(now).run();
      }
    }
    view.width(chart.clientWidth).runAsync().then(function () {
      chart.classList.add("is-live");
      width = chart.clientWidth;
      if (window.ResizeObserver) {
        new ResizeObserver(fit).observe(chart);
      }
    });
  }

  document.querySelectorAll(".chart").forEach(bringToLife);

  // Paper shows what is folded away on the screen.
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details:not([open])").forEach(function (part) {
      part.open = true;
      part.dataset.folded = "";
    });
  });
  window.addEventListener("afterprint", function () {
    document.querySelectorAll("details[data-folded]").forEach(function (part) {
      part.open = false;
      delete part.dataset.folded;
    });
  });
})();
