// Browsers give no worker to a page that was opened from disk. Search then runs in a hidden frame that looks like one from inside.
(() => {
  if (location.protocol !== "file:") return;

  const load = (room, url) =>
    new Promise((loaded, failed) => {
      const script = room.document.createElement("script");
      script.src = url;
      script.onload = loaded;
      script.onerror = () => failed(new Error(`no script ${url}`));
      room.document.body.append(script);
    });

  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      // Written at once: an empty frame may load a blank page later, and would lose what is set here.
      const page = this.frame.contentDocument;
      page.open();
      page.write("<body></body>");
      page.close();
      const room = this.frame.contentWindow;
      room.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      room.importScripts = (...urls) => urls.reduce((done, next) => done.then(() => load(room, next)), Promise.resolve());
      this.loaded = load(room, new URL(url, location));
    }

    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.Worker = FrameWorker;
})();
