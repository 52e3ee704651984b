function o(n){const e=n==null?"":String(n),t=typeof n=="string"&&/^[=+\-@\t\r]/.test(e)?`'${e}`:e;return/[",\r\n]/.test(t)?`"${t.replaceAll('"','""')}"`:t}function c(n,e){return[n,...e].map(t=>t.map(o).join(",")).join(`\r
`)+`\r
`}function a(n,e,t){r(n,new Blob([t],{type:e}))}function r(n,e){const t=document.createElement("a");t.href=URL.createObjectURL(e),t.download=n,t.click(),setTimeout(()=>URL.revokeObjectURL(t.href),1e4)}export{r as a,a as d,c as f};
