export const documents = {
  title: 'Documents',
  sub: 'The pages that belong to this build.',
  tree: 'Pages',
  filter: 'Filter by title',
  none: 'No page belongs to this build',
  noneHint: 'Set PLATFORM_DOCS_ROOT, or build with the pages embedded.',
  onPage: 'On this page',
  notFound: 'There is no such page',
  notFoundHint: 'It may have moved. Choose one from the list.',
  choose: 'Choose a page',
  external: 'opens elsewhere',
};
